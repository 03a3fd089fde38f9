# Sourced before a script opens pages in a browser. The rest of the script is skipped if there is no
# browser or if STROBE_NO_BROWSER is set.
if [ -n "${STROBE_NO_BROWSER:-}" ]; then
    echo "skipped: STROBE_NO_BROWSER is set, no page was opened"
    exit 0
elif ! command -v chromium >/dev/null; then
    echo "skipped: chromium is not installed, no page was opened"
    exit 0
fi

# usage: with_script PAGE SCRIPT: prints a page that ends with one more script. A page runs only
# the scripts whose hashes are in its policy, so the policy of the copy gets the hash of this one.
with_script() {
    command -v openssl >/dev/null || {
        echo "openssl is not installed: tools/install_deps.sh --check" >&2
        exit 1
    }
    sed "s|; script-src |&'sha256-$(openssl dgst -sha256 -binary "$2" | base64)' |" "$1"
    printf '<script>'
    cat "$2"
    echo '</script>'
}
