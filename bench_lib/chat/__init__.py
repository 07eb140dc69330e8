"""Message models: servers, vLLM in this process, kept replies, a local model as a chat."""
