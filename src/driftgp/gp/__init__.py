"""The paper: the bound and its derivative, inducing points, the window, and AGP itself."""
