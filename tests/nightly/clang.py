# SPDX-License-Identifier: Apache-2.0
"""Builds everything with clang++ and its warnings as errors, without optimisation.

Usage: tests/nightly/run clang [--minutes M] [--jobs N]
"""
from part import Part, options_of, run_part


def main():
    options = options_of(__doc__.splitlines()[0]).parse_args()
    part = Part("clang", options.minutes, options.jobs)

    def work(part):
        part.need("clang++", "clang")
        part.configure()
        part.step("build", part.build)

    run_part(part, work)


main()
