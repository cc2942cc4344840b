"""Speech over HTTP, as OpenAI's clients ask for it, and over Wyoming, as Home Assistant does."""
