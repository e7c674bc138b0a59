"""The tpu plugin of plugrt."""
