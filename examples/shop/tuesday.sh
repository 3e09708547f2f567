#!/usr/bin/env bash
# Writes tuesday.json: the usage of the containers checkout and search on Tuesday, 6 May 2025, as
# Prometheus would answer this range query with a step of one minute:
#
#   sum by (container) (rate(container_cpu_usage_seconds_total{namespace="shop",container!=""}[2m]))
#
# The values are invented: a peak at noon and one in the evening, a sale from 12:30 to 12:42, and
# noise from a fixed seed.
set -euo pipefail
cd "$(dirname "$0")"
awk '
  # A linear congruential generator: awk has no generator that gives the same numbers everywhere.
  function noise() { seed = (seed * 16807) % 2147483647; return 0.96 + 0.08 * seed / 2147483647 }
  function bell(hour, at, width) { return exp(-((hour - at) / width) ^ 2) }
  function checkout(hour) {
    return (1.5 + 5 * bell(hour, 12, 3) + 3 * bell(hour, 19, 1.5)) * (12.5 <= hour && hour < 12.7 ? 1.8 : 1)
  }
  function search(hour) { return 0.5 + 1.5 * bell(hour, 13, 4) + bell(hour, 20, 2) }
  function series(name, of, minute, hour, cores) {
    printf "  {\"metric\": {\"container\": \"%s\"}, \"values\": [", name
    for (minute = 0; minute <= 1440; minute++) {
      hour = minute / 60
      cores = (of == 1 ? checkout(hour) : search(hour)) * noise()
      separator = minute == 0 ? "\n    " : minute % 60 == 0 ? ",\n    " : ", "
      printf "%s[%d, \"%.3f\"]", separator, 1746489600 + 60 * minute, cores
    }
    printf "\n  ]}"
  }
  BEGIN {
    seed = 42
    print "{\"status\": \"success\", \"data\": {\"resultType\": \"matrix\", \"result\": ["
    series("checkout", 1)
    print ","
    series("search", 2)
    print "\n]}}"
  }
' > tuesday.json
