# Sourced where a script goes on to open pages in a browser: the rest is skipped where there is
# none, or where STROBE_NO_BROWSER is set.
if [ -n "${STROBE_NO_BROWSER:-}" ]; then
    echo "skipped: STROBE_NO_BROWSER is set, no page was opened"
    exit 0
elif ! command -v chromium >/dev/null; then
    echo "skipped: chromium is not installed, no page was opened"
    exit 0
fi
