"""Sandboxed processes: a supervisor starts them, and backends isolate code that a model wrote."""
