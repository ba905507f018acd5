"""The models that can sit an exam: endpoints, local ones, and those for tests and demos."""
