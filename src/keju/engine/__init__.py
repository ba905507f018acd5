"""The engine: one asyncio loop that asks a model and loses nothing."""
