"""The cuda plugin of plugrt."""
