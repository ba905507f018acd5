"""The scores of exams: what a run knows about its replies, below the engine that asks for them."""
