<?php
// What PHP finds in the query of each request: its keys and values as in readers.php.
error_reporting(0);

function escape($text) {
    return preg_replace_callback('/[^A-Za-z0-9]/', fn($m) => sprintf('%%%02x', ord($m[0])), (string) $text);
}

function leaves($key, $value, &$out) {
    if (is_array($value)) {
        foreach ($value as $inner) {
            leaves($key, $inner, $out);
        }
    } else {
        $out[] = escape($key) . ' ' . escape($value);
    }
}

$out = [];
foreach ($_GET as $key => $value) {
    leaves($key, $value, $out);
}
$answer = implode("\t", $out);
header('Content-Length: ' . strlen($answer));
echo $answer;
