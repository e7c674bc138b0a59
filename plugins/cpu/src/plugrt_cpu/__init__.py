"""The cpu plugin of plugrt."""
