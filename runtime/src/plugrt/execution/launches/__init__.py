"""From a call to a launch: the pipeline, loaded programs and their runners."""
