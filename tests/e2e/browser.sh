# Sourced before a script opens pages in a browser. The rest of the script is skipped if there is no
# browser or if STROBE_NO_BROWSER is set.
if [ -n "${STROBE_NO_BROWSER:-}" ]; then
    echo "skipped: STROBE_NO_BROWSER is set, no page was opened"
    exit 0
elif ! command -v chromium >/dev/null; then
    echo "skipped: chromium is not installed, no page was opened"
    exit 0
fi
