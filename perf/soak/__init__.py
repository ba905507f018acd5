"""Long attacks on a run: odd endpoints, kills, bad inputs. ``make soak`` runs all of them."""
