"""A model that follows a script, behind the wire formats of Anthropic and OpenAI. README.md says more."""
