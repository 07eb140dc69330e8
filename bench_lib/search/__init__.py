"""Looking things up outside the video: providers, the tools that use them, a text index."""
