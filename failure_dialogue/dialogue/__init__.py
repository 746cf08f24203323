"""Questions, replies and the conversation between them."""
