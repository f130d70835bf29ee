"""Tools around the library: the command, the viewer, replay, the stability harness, transcript files."""
