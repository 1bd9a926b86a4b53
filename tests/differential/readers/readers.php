<?php
// What the parsers of PHP make of targets and queries. The exchange is that of
// readers.js. `parse_str` registers variables as `$_GET` is filled.
error_reporting(0);
ini_set('memory_limit', '1G');

function escape($text) {
    return preg_replace_callback('/[^A-Za-z0-9]/', fn($m) => sprintf('%%%02x', ord($m[0])), (string) $text);
}

function leaves($name, $key, $value, &$out) {
    if (is_array($value)) {
        foreach ($value as $inner) {
            leaves($name, $key, $inner, $out);
        }
    } else {
        $out[] = escape($name) . ' ' . escape($key) . ' ' . escape($value);
    }
}

$lines = explode("\n", stream_get_contents(STDIN));
foreach ($lines as $line) {
    if ($line === '') {
        continue;
    }
    $text = substr($line, 2);
    $out = [];
    if ($line[0] === 'P') {
        $path = parse_url($text, PHP_URL_PATH);
        if ($path !== false) {
            $out[] = escape('php parse_url') . ' ' . escape($path ?? '');
        }
        $path = parse_url('http://localhost' . $text, PHP_URL_PATH);
        if ($path !== false) {
            $out[] = escape('php parse_url whole') . ' ' . escape($path ?? '');
        }
        $path = parse_url(rawurldecode(strtok($text, '?')), PHP_URL_PATH);
        if ($path !== false) {
            $out[] = escape('php parse_url decoded') . ' ' . escape($path ?? '');
        }
        $out[] = escape('php strtok') . ' ' . escape(strtok($text, '?'));
    } else {
        $found = [];
        parse_str($text, $found);
        foreach ($found as $key => $value) {
            leaves('php', $key, $value, $out);
        }
        $found = [];
        parse_str(urldecode($text), $found);
        foreach ($found as $key => $value) {
            leaves('php decoded', $key, $value, $out);
        }
    }
    echo implode("\t", $out), "\n";
}
