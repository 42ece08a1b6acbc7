#!/bin/sh
# Sees to an nginx for the tests, and to openssl for its certificate: those of the system, else through apt where that is permitted,
# else says what to do. Each test runs a process of its own, so the package must start no service.
set -eu
# Debian has nginx where only the paths of root have it.
PATH="$PATH:/usr/sbin:/sbin"
has() {
    command -v "$1" > /dev/null 2>&1
}
if has nginx && has openssl; then exit 0; fi
sudo=""
if [ "$(id -u)" != 0 ] && has sudo && sudo -n true 2> /dev/null; then sudo="sudo -n"; fi
if has apt-get && { [ "$(id -u)" = 0 ] || [ -n "$sudo" ]; }; then
    echo "Installing nginx through apt ..."
    policy=/usr/sbin/policy-rc.d
    # Debian's way to install a service without starting it (invoke-rc.d(8)); a policy of the system stays as it is.
    if [ ! -e "$policy" ]; then
        trap '$sudo rm -f "$policy"' EXIT
        printf '#!/bin/sh\nexit 101\n' | $sudo tee "$policy" > /dev/null
        $sudo chmod 755 "$policy"
    fi
    $sudo apt-get update -qq < /dev/null || true
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends nginx openssl < /dev/null > /dev/null || true
fi
if has nginx && has openssl; then exit 0; fi
echo "The tests need nginx and openssl, and this user may not install them: install the packages 'nginx' and 'openssl' of your system, then run make again." >&2
exit 1
