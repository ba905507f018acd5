"""Processes beside Keju: one supervisor starts them, backends shut in what a model wrote."""
