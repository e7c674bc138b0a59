"""Who is there, and who is chosen: discovery, registry, selection and loading of plugins."""
