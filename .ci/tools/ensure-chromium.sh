#!/bin/sh
# Sees to a Chromium for the browser tests: the headless shell, through apt where that is permitted, else a browser of the system, else
# Chromium through apt, else says what to do.
set -eu
has() {
    command -v "$1" > /dev/null 2>&1
}
if has chromium-headless-shell; then exit 0; fi
sudo=""
if [ "$(id -u)" != 0 ] && has sudo && sudo -n true 2> /dev/null; then sudo="sudo -n"; fi
may_install=false
if has apt-get && { [ "$(id -u)" = 0 ] || [ -n "$sudo" ]; }; then may_install=true; fi
install() {
    $may_install && $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" < /dev/null > /dev/null
}
if $may_install; then
    echo "Installing Chromium through apt ..."
    $sudo apt-get update -qq < /dev/null || true
fi
# Not every distribution has this package.
if install chromium-headless-shell 2> /dev/null; then exit 0; fi
for name in chromium chromium-browser google-chrome google-chrome-stable; do
    if has "$name"; then exit 0; fi
done
if install chromium; then exit 0; fi
echo "The browser tests need Chromium, and this user may not install it: install the package 'chromium' of your system, then run make again." >&2
exit 1
