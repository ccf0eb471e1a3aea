"""The methods that the paper compares with, and some that it left out: each obeys the model contract."""

from driftgp.rivals.exact_window import ExactWindow
from driftgp.rivals.fitc import DTC, FITC
from driftgp.rivals.krlst import KRLST
from driftgp.rivals.osgp import OSGP
from driftgp.rivals.persistence import LastKMean, Persistence
from driftgp.rivals.svgp import SVGP
from driftgp.rivals.vsi import AGPVSI, VSI, WVSGP
from driftgp.rivals.wiski import WISKI

__all__ = [
    "AGPVSI",
    "DTC",
    "FITC",
    "KRLST",
    "OSGP",
    "SVGP",
    "VSI",
    "WISKI",
    "WVSGP",
    "ExactWindow",
    "LastKMean",
    "Persistence",
]
