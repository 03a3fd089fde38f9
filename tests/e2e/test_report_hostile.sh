#!/bin/sh
# A run and a profile whose names and texts are attacks: the page that `strobe report` makes of them
# runs no script of theirs and sends nothing, the pictures contain none, a terminal is sent no
# escape, and no cell of the CSV is a formula. STROBE_NO_BROWSER=1 skips the browser.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
die() { echo "$0: $*" >&2; exit 1; }

cd "$work"
escape=$(printf '\033') bell=$(printf '\a')
act='document.title="ATTACKED";fetch("https://attack.example/x");alert(1)'
# A file name cannot contain `/`, so closing tags are only in the texts of the files.
name="=1+1<img src=x onerror='document.title=\"ATTACKED\"'>![](x)$escape[2J${bell}x
strobe: all is well"
mkdir -p "runs/$name" runs/plain
"$here/fixture_run.sh" runs/attack flash=true
mv runs/attack/* "runs/$name/" && rmdir runs/attack
"$here/fixture_run.sh" runs/plain flash=false ms=120
"$here/fixture_profile.sh" profile.json
attack="</script></title></style><script>$act</script><img src=x onerror='$act'>"
attack="$attack<svg onload='$act'><style>body{display:none}</style>]]>--><a href=javascript:$act>"
# As text of JSON, for the replacement of a sed command.
quote() { printf '%s' "$1" | sed 's/["\\]/\\&/g; s/[\\&|]/\\&/g'; }
quoted=$(quote "$attack")
# Well-formed XML, so that a strict parser accepts it too.
picture=$(quote "</title><image href='x:' onerror='$act'/><script>$act</script><title>")
sed "s|\"bound\":\"[a-z]*\"|\"bound\":\"$picture\"|g
     s|\"op\":\"MATMUL\"|\"op\":\"$quoted\"|g
     s|\"head\"|\"$quoted\"|g
     s|\"phase\":\"forward\"|\"phase\":\"forward\\\\u001b[2J\\\\u202e\"|g
     s|\"scope\":\"lm_head\"|\"scope\":\"\\\\u2028\\\\u2029$quoted\"|g
     s|\"text\":\"[^\"]*\"|\"text\":\"$quoted\"|
     s|\"weights\",\"optimizer\"|\"x);background:url(https://attack.example/m\",\"$quoted\"|
     s|\"gpu\":\"[^\"]*\"|\"gpu\":\"$quoted\"|
     s|\"dtype\":\"tf32\"|\"dtype\":\"$quoted\"|" profile.json >"runs/$name/profile.json"
for text in "dataset = $attack" "$attack = 1" "=$escape]0;x$bell = -2+3"; do
    printf '%s\n' "$text"
done >>"runs/$name/config.conf"
printf '%s%s' "$attack" "$escape[31m" >"runs/$name/samples.txt"
sed -i "s|\"A processor\"|\"$quoted\"|" "runs/$name/env.json"

"$STROBE" report "runs/$name" runs/plain --html=page.html --csv=table.csv --svg=roof.svg \
    >text 2>messages || die "report failed: $(cat -v messages)"
grep -q 'bound by &lt;/title&gt;&lt;image' roof.svg || die "the attack is not in the picture"
[ "$(grep -c '</script' page.html)" -eq "$(grep -c '^</script>$\|</script>$' page.html)" ] ||
    die "a script ends where it should not"

# --- the terminal
# Nothing but printed characters and line breaks, and no line is forged.
if LC_ALL=C grep -q '[[:cntrl:]]' text messages; then
    die "control characters are printed: $(cat -v text messages)"
fi
if grep -q '^strobe: all is well' text messages; then die "a name forged a line"; fi
grep -q '\\x1b\[2J' text || die "the escape is not shown: $(cat text)"
"$STROBE" report "runs/$name/absent$escape[2J" 2>messages && die "an absent run was accepted"
if grep -q "$escape" messages; then die "an error sends an escape: $(cat -v messages)"; fi
if command -v script >/dev/null; then
    # A file with one is printed unchanged to a pipe, and shown on a terminal.
    printf 'out_dir = a%sb\n' "$escape[2J" >odd.conf
    "$STROBE" config odd.conf | grep -q "a$escape\[2Jb" || die "a pipe gets other bytes"
    SHELL=/bin/sh script -qec "'$STROBE' config odd.conf" typescript >/dev/null </dev/null
    grep -q 'a\\x1b\[2Jb' typescript || die "the terminal shows no \\x1b: $(cat -v typescript)"
    if grep -q "$escape\[2J" typescript; then die "the terminal is sent an escape"; fi
else
    echo "skipped: script is not installed, no terminal was tried"
fi

# --- Markdown
# Text of files neither becomes an element nor a picture, and forges no heading.
cat >bench.json <<'TEXT'
{"v":1,"kind":"bench","title":"![](https://attack.example/t)\n# forged","notes":["<script>&lt;`x`"],
 "tables":[{"title":"# forged <b>","columns":[{"id":"a"}],"rows":[{}],"shown":[["<img src=x>"]]}]}
TEXT
"$STROBE" report "runs/$name" runs/plain bench.json --markdown --html=bench.html >text.md \
    2>messages || die "report --markdown failed: $(cat -v messages)"
if LC_ALL=C grep -n '[[:cntrl:]]' text.md; then die "--markdown prints control characters"; fi
grep -n '\(^\|[^\]\)\(<\|&\|`\|\[\)' text.md && die "--markdown prints elements or pictures"
grep -n '^ *#' text.md && die "--markdown has a forged heading"
for text in '!\\\[](x)' '^!\\\[](https://attack.example/t) # forged$' '^\\# forged \\<b>$' \
    '^\\<script>\\&lt;\\`x\\`$'; do
    grep -q "$text" text.md || die "--markdown lacks $text: $(cat text.md)"
done

# --- the table
grep -q "'=1+1" table.csv || die "the name of the run is a formula: $(cat -v table.csv)"
if LC_ALL=C grep -q '^[=+@]' table.csv; then die "a cell is a formula: $(cat -v table.csv)"; fi

# --- the pictures
grep -qi '<script\|<img\|<a \|<svg [^>]* on[a-z]*=\|javascript:[^&]*"' roof.svg &&
    die "the picture has an element of the attack"

. "$here/browser.sh"

# usage: look URL: prints the document after its scripts; fails if the browser did not
look() {
    timeout 120 chromium --headless --no-sandbox --disable-gpu --no-first-run --disable-sync \
        --disable-background-networking --disable-component-update \
        --host-resolver-rules='MAP * ~NOTFOUND' --user-data-dir="$work/profile" \
        --enable-logging=stderr --virtual-time-budget=8000 --log-net-log="$work/net.json" \
        --dump-dom "$1" 2>browser.log || die "$1: the browser failed: $(tail -3 browser.log)"
}
# usage: harmless FILE
harmless() {
    look "file://$work/$1" >dom.html
    if grep -q '<title[^>]*>ATTACKED' dom.html; then die "$1: a script of the attack ran"; fi
    if grep -q CONSOLE browser.log; then die "$1: $(grep CONSOLE browser.log | head -3)"; fi
    if grep -q '"[^"]*://attack.example' net.json; then die "$1: the attack sent a request"; fi
}
harmless page.html
grep -q 'data-ready="true"' dom.html ||
    die "the page did not end: $(grep -o '<body[^>]*>' dom.html)"
grep -q 'data-errors="0"' dom.html || die "errors: $(grep -o '<body[^>]*>' dom.html)"
grep -q '<pre tabindex="0">&lt;/script&gt;&lt;/title&gt;' dom.html || die "the sample is not shown"
harmless roof.svg

# The policy alone stops what escaping would let through: an element, a handler and a style that
# somebody put into the page.
sed "s|<noscript>|<script>$act</script><img src=x onerror='$act'><b style='color:red'>x</b>&|" \
    page.html >broken.html
look "file://$work/broken.html" >dom.html
if grep -q '<title[^>]*>ATTACKED' dom.html; then die "the policy let a foreign script run"; fi
[ "$(grep -c 'Refused to\|violates the following' browser.log)" -ge 3 ] ||
    die "the policy stopped less than three things: $(grep CONSOLE browser.log)"
