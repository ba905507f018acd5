"""Sources of questions: folders, archives and hubs."""
