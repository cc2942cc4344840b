"""Parts of the drill: each attacks one promise, in many small cases."""
