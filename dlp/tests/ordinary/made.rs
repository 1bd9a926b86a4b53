//! Ordinary content that no machine has lying about: what programs report of
//! themselves, what they call, and texts of two languages. The same every time.

/// Numbers that look random (SplitMix64).
pub(crate) struct Dice(u64);

impl Dice {
    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, most: u64) -> u64 {
        self.roll() % most
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        let place = usize::try_from(self.below(of.len() as u64)).unwrap_or_default();
        of.get(place).copied().unwrap_or_default()
    }

    /// So many characters of an alphabet.
    fn of(&mut self, alphabet: &str, count: usize) -> String {
        let characters: Vec<&str> = alphabet.split("").filter(|one| !one.is_empty()).collect();
        (0..count).map(|_| self.pick(&characters)).collect()
    }

    fn hex(&mut self, count: usize) -> String {
        self.of("0123456789abcdef", count)
    }

    /// RFC 9562, version 4.
    fn uuid(&mut self) -> String {
        let (a, b, c, d) = (self.hex(8), self.hex(4), self.hex(3), self.hex(3));
        format!("{a}-{b}-4{c}-a{d}-{}", self.hex(12))
    }

    /// RFC 3339.
    fn time(&mut self) -> String {
        let (day, hour) = (self.below(28) + 1, self.below(24));
        let (minute, millis) = (self.below(60), self.below(60_000));
        let (second, milli) = (millis / 1000, millis % 1000);
        format!("2026-11-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
    }

    fn words(&mut self, count: usize) -> String {
        let words: Vec<&str> = (0..count).map(|_| self.pick(&WORDS)).collect();
        words.join(" ")
    }

    /// What some fields of a message look like in protobuf: numbers, texts, numbers of
    /// eight bytes.
    fn protobuf(&mut self) -> Vec<u8> {
        let mut made = Vec::new();
        for field in 1..=self.below(9) + 3 {
            let [tag, ..] = (field << 3).to_le_bytes();
            match self.below(3) {
                0 => {
                    made.push(tag);
                    let number = self.roll().to_le_bytes();
                    made.extend(number.iter().take(4).map(|byte| byte | 0x80));
                    made.push(7);
                }
                1 => {
                    let text = self.words(4);
                    made.extend([tag | 2, text.len().to_le_bytes()[0]]);
                    made.extend(text.bytes());
                }
                _ => {
                    made.push(tag | 1);
                    made.extend(self.roll().to_le_bytes());
                }
            }
        }
        made
    }
}

const LETTERS: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
/// Crockford's base 32, as ULIDs have it.
const ULID: &str = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

const WORDS: [&str; 40] = [
    "request",
    "token",
    "user",
    "secret",
    "value",
    "session",
    "the",
    "of",
    "to",
    "password",
    "build",
    "cache",
    "error",
    "timeout",
    "key",
    "api",
    "client",
    "server",
    "and",
    "is",
    "not",
    "found",
    "access",
    "authorization",
    "bearer",
    "connection",
    "stream",
    "with",
    "from",
    "parse",
    "index",
    "update",
    "delete",
    "account",
    "payment",
    "order",
    "invoice",
    "model",
    "prompt",
    "answer",
];

const CHINESE: [&str; 40] = [
    "我们", "的", "系统", "密码", "可以", "用户", "服务", "数据", "请求", "令牌", "配置", "错误",
    "文件", "网络", "连接", "测试", "更新", "权限", "安全", "接口", "返回", "参数", "时间", "如果",
    "需要", "使用", "已经", "没有", "问题", "结果", "版本", "支持", "代码", "运行", "环境", "密钥",
    "地址", "登录", "，", "。",
];

fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for three in bytes.chunks(3) {
        let at = |place: usize| u32::from(three.get(place).copied().unwrap_or_default());
        let whole = at(0) << 16 | at(1) << 8 | at(2);
        for place in 0..=three.len() {
            let index = whole >> (18 - 6 * place) & 63;
            let index = usize::try_from(index).unwrap_or_default();
            text.extend(ALPHABET.get(index).map(|byte| char::from(*byte)));
        }
        text.extend((three.len()..3).map(|_| '='));
    }
    text
}

/// Pieces of so many bytes in all, each a content of its own.
fn pieces(seed: u64, bytes: usize, mut piece: impl FnMut(&mut Dice) -> String) -> Vec<Vec<u8>> {
    let (mut dice, mut made, mut length) = (Dice(seed), Vec::new(), 0);
    while length < bytes {
        let mut text = String::new();
        while text.len() < 128 << 10 {
            text.push_str(&piece(&mut dice));
        }
        length += text.len();
        made.push(text.into_bytes());
    }
    made
}

/// Spans of OpenTelemetry as JSON (OTLP).
pub(crate) fn spans(bytes: usize) -> Vec<Vec<u8>> {
    pieces(1, bytes, |dice| {
        let (trace, span, parent) = (dice.hex(32), dice.hex(16), dice.hex(16));
        let (begin, took) = (dice.below(1 << 60), dice.below(1 << 30));
        let (id, words, commit) = (dice.uuid(), dice.words(6), dice.hex(40));
        format!(
            r#"{{"resourceSpans":[{{"resource":{{"attributes":[{{"key":"service.instance.id","value":{{"stringValue":"{id}"}}}},{{"key":"service.version","value":{{"stringValue":"{commit}"}}}}]}},"scopeSpans":[{{"scope":{{"name":"@opentelemetry/instrumentation-http"}},"spans":[{{"traceId":"{trace}","spanId":"{span}","parentSpanId":"{parent}","name":"{words}","kind":3,"startTimeUnixNano":"{begin}","endTimeUnixNano":"{}","attributes":[{{"key":"http.url","value":{{"stringValue":"https://api.example.org/v1/{id}?cursor={}"}}}}]}}]}}]}}]}}
"#,
            begin + took,
            dice.of(LETTERS, 24),
        )
    })
}

/// Envelopes of crash reports, as Sentry's clients send them.
pub(crate) fn crashes(bytes: usize) -> Vec<Vec<u8>> {
    pieces(2, bytes, |dice| {
        let (event, trace, time) = (dice.hex(32), dice.hex(32), dice.time());
        let mut frames = Vec::new();
        for _ in 0..dice.below(12) + 3 {
            let (file, function) = (dice.pick(&WORDS), dice.pick(&WORDS));
            let (line, address) = (dice.below(3000), dice.hex(12));
            frames.push(format!(
                r#"{{"filename":"app:///{file}.{}.min.js","function":"{function}","lineno":1,"colno":{line},"instruction_addr":"0x{address}","context_line":"{}"}}"#,
                dice.hex(20),
                dice.words(9),
            ));
        }
        format!(
            r#"{{"event_id":"{event}","sent_at":"{time}","trace":{{"trace_id":"{trace}","release":"web@{}"}}}}
{{"type":"event"}}
{{"event_id":"{event}","platform":"javascript","exception":{{"values":[{{"type":"TypeError","value":"{}","stacktrace":{{"frames":[{}]}}}}]}},"debug_meta":{{"images":[{{"debug_id":"{}","type":"sourcemap"}}]}},"user":{{"id":"{}","ip_address":"192.0.2.{}"}}}}
"#,
            dice.hex(40),
            dice.words(8),
            frames.join(","),
            dice.uuid(),
            dice.below(1 << 40),
            dice.below(256),
        )
    })
}

/// Batches of what users did, as Segment's clients send them.
pub(crate) fn events(bytes: usize) -> Vec<Vec<u8>> {
    pieces(3, bytes, |dice| {
        let (message, anonymous, time) = (dice.uuid(), dice.uuid(), dice.time());
        let (user, session, words) = (dice.of(LETTERS, 28), dice.below(1 << 42), dice.words(3));
        format!(
            r#"{{"batch":[{{"type":"track","messageId":"ajs-next-{message}","anonymousId":"{anonymous}","userId":"{user}","event":"{words}","timestamp":"{time}","context":{{"ip":"198.51.100.{}","userAgent":"Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/141.0.0.0 Safari/537.36","page":{{"url":"https://example.org/{}?utm_id={}"}}}},"properties":{{"session_id":{session},"plan":"pro","revenue":{}.99,"order_id":"{}"}}}}],"sentAt":"{time}"}}
"#,
            dice.below(256),
            dice.pick(&WORDS),
            dice.of(LETTERS, 16),
            dice.below(1000),
            dice.of(ULID, 26),
        )
    })
}

/// Sums, identifiers and fields of traces, line by line.
pub(crate) fn identifiers(bytes: usize) -> Vec<Vec<u8>> {
    pieces(4, bytes, |dice| {
        let (trace, span, uuid, ulid) =
            (dice.hex(32), dice.hex(16), dice.uuid(), dice.of(ULID, 26));
        let (sha1, sha256, sha512) = (dice.hex(40), dice.hex(64), dice.hex(128));
        let name = dice.pick(&WORDS);
        let digest: Vec<u8> = (0..8).flat_map(|_| dice.roll().to_le_bytes()).collect();
        let (long, short) = (
            base64(&digest),
            base64(digest.get(..32).unwrap_or_default()),
        );
        format!(
            "traceparent: 00-{trace}-{span}-01\ntracestate: {name}={span},congo=t61rcWkgMzE\n\
             X-Request-Id: {uuid}\nETag: W/\"{}-{}\"\n{sha256}  ./{name}.tar.gz\n\
             100644 blob {sha1}    1234\t{name}.rs\n{ulid} {uuid}\nintegrity: sha512-{long}\n\
             sha256-{short}\n{sha512}\nmd5:{}\n",
            dice.hex(5),
            dice.of(LETTERS, 22),
            dice.hex(32),
        )
    })
}

/// Messages of protobuf in base 64, as JSON carries them.
pub(crate) fn messages(bytes: usize) -> Vec<Vec<u8>> {
    pieces(5, bytes, |dice| {
        let message: Vec<u8> = (0..=dice.below(40)).flat_map(|_| dice.protobuf()).collect();
        let noise: Vec<u8> = (0..dice.below(200) + 4)
            .flat_map(|_| dice.roll().to_le_bytes())
            .collect();
        format!(
            "{{\"insertId\":\"{}\",\"data\":\"{}\",\"vector\":\"{}\",\"orderingKey\":\"{}\"}}\n",
            dice.of(LETTERS, 14),
            base64(&message),
            base64(&noise),
            dice.uuid(),
        )
    })
}

/// Calls of interfaces as their descriptions in OpenAPI have them: lists, pages,
/// objects with identifiers of many kinds.
pub(crate) fn calls(bytes: usize) -> Vec<Vec<u8>> {
    pieces(6, bytes, |dice| {
        let (id, time, words) = (dice.uuid(), dice.time(), dice.words(12));
        let (customer, charge, object) = (dice.of(LETTERS, 14), dice.of(LETTERS, 24), dice.hex(24));
        let cursor = format!(
            r#"{{"after":"{time}","id":"{id}","limit":{}}}"#,
            dice.below(500)
        );
        format!(
            r#"{{"operationId":"{}{}","parameters":{{"page[after]":"{}","filter":"{}"}},"body":{{"id":"{id}","customer":"cus_{customer}","charge":"ch_{charge}","_id":{{"$oid":"{object}"}},"created_at":"{time}","email":"{}.{}@example.org","phone":"+1-555-01{:02}","description":"{words}","amount":{},"currency":"eur","links":{{"self":"https://api.example.org/v2/orders/{object}"}},"idempotency_key":"{}"}},"security":[{{"bearerAuth":[]}},{{"apiKey":["<your api key>"]}}]}}
"#,
            dice.pick(&WORDS),
            dice.pick(&WORDS),
            base64(cursor.as_bytes()),
            dice.words(2),
            dice.pick(&WORDS),
            dice.pick(&WORDS),
            dice.below(100),
            dice.below(100_000),
            dice.uuid(),
        )
    })
}

/// Text in Chinese and English, with numbers, as people and models write.
pub(crate) fn chinese(bytes: usize) -> Vec<Vec<u8>> {
    pieces(7, bytes, |dice| {
        let mut text = String::new();
        for _ in 0..dice.below(60) + 8 {
            text.push_str(dice.pick(&CHINESE));
        }
        format!(
            "{}. {text} {}（{}）\n",
            dice.below(1000),
            dice.words(4),
            dice.time()
        )
    })
}

/// Bytes in no order.
pub(crate) fn noise(bytes: usize) -> Vec<u8> {
    let mut dice = Dice(8);
    (0..bytes.div_ceil(8))
        .flat_map(|_| dice.roll().to_le_bytes())
        .collect()
}
