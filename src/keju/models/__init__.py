"""The models that Keju can evaluate: endpoints, local models, and models for tests and demos."""
