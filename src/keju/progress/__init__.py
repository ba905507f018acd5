"""The data that a running session gives to displays and watchers, and their interfaces."""
