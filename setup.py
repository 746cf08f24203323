"""Packages and data files for `pip install`; all else stands in setup.cfg."""

from glob import glob

from setuptools import find_packages, setup

setup(
    packages=find_packages(include=["failure_dialogue", "failure_dialogue.*", "sim_bridge", "sim_bridge.*"]),
    package_data={"failure_dialogue": ["models/*", "models/**/*"], "sim_bridge": ["data/*", "data/**/*"]},
    data_files=[
        ("share/failure_dialogue", ["package.xml"]),
        ("share/failure_dialogue/config", glob("config/*")),
        ("share/failure_dialogue/launch", glob("launch/*")),
    ],
)
