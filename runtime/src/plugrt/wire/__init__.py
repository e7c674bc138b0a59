"""Binary formats: protocol buffers, FlatBuffers, HLO protos, MLIR bytecode, saved bytes."""
