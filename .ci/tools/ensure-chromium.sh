#!/bin/sh
# Sees to a Chromium for the browser tests: the system's, else through apt where that is permitted, else says what to do.
set -eu
for name in chromium chromium-browser google-chrome google-chrome-stable; do
    if command -v "$name" > /dev/null 2>&1; then exit 0; fi
done
sudo=""
if [ "$(id -u)" != 0 ] && command -v sudo > /dev/null 2>&1 && sudo -n true 2> /dev/null; then sudo="sudo -n"; fi
if command -v apt-get > /dev/null 2>&1 && { [ "$(id -u)" = 0 ] || [ -n "$sudo" ]; }; then
    echo "Installing Chromium through apt ..."
    $sudo apt-get update -qq < /dev/null || true
    if $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium < /dev/null > /dev/null; then exit 0; fi
fi
echo "The browser tests need Chromium, and this user may not install it: install the package 'chromium' of your system, then run make again." >&2
exit 1
