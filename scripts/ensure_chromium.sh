#!/usr/bin/env bash
# The browser tests need Chromium. Installed where that is possible without asking, else said.
set -eu
for name in chromium chromium-browser google-chrome; do
  command -v "$name" >/dev/null && exit 0
done
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  apt-get update -qq
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core
  exit 0
fi
echo "Chromium is missing, so the browser tests cannot run. Debian: sudo apt-get install chromium."
[ "${CI:-}" != true ]
