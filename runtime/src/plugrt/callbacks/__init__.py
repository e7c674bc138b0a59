"""Python functions that programs call, and the launches that call them."""
