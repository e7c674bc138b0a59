"""The platforms that the settings ask for, and the clients that are started for them."""
