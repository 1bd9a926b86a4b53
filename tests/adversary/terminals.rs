//! Terminals of other programs of the same user: a run makes and opens its own, and no
//! way leads to another's.

use std::collections::BTreeMap;

use outgate_harness::{Identity, Lab, Outcome, Running, Sandbox, lab_tests, race_time};

/// Every way, and the program that it is tried on.
const EVERY_WAY: &str = include_str!("terminals.py");

/// Ways that lead to what is the caller's own.
const OWN: [&str; 2] = ["own-by-name", "own-by-request"];

/// What is answered of a terminal of somebody else's, and of what is none.
const NOT_YOURS: [&str; 4] = ["EACCES", "EBADF", "ENOTTY", "EINVAL"];

fn python(arguments: &[&str]) -> Vec<String> {
    let words = ["/usr/bin/python3", "-c", EVERY_WAY];
    words
        .iter()
        .chain(arguments)
        .map(|word| (*word).to_owned())
        .collect()
}

fn reports(outcome: &Outcome) -> BTreeMap<&str, &str> {
    let lines = outcome.stdout.lines();
    lines.filter_map(|line| line.split_once('=')).collect()
}

/// A program outside that has a terminal, and the terminal's name.
fn victim(lab: &Lab, identity: Identity) -> (Running, String) {
    let victim = lab.start_bare(identity, &python(&["victim"]));
    let said = victim.wait_for("\n");
    let name = said
        .trim()
        .strip_prefix("ready ")
        .expect("a name")
        .to_owned();
    (victim, name)
}

/// Starts a program on a terminal of its own, and says who may do what with it before and after.
const ON_A_TERMINAL: &str = "\
import fcntl,os,pty,stat,struct,sys
pid,first=pty.fork()
if pid==0:
    os.execvp(sys.argv[1],sys.argv[1:])
name='/dev/pts/%d'%struct.unpack('I',fcntl.ioctl(first,0x80045430,bytes(4)))
before=oct(stat.S_IMODE(os.stat(name).st_mode)); kept=os.open(name,os.O_RDWR|os.O_NOCTTY)
shown=b''
while b'OVER' not in shown:
    shown+=os.read(first,4096)
os.waitpid(pid,0)
now=os.stat(name)
print('said',shown.decode().replace('\\r',''))
print('modes',before,oct(stat.S_IMODE(now.st_mode)),now.st_uid,now.st_gid)
";

lab_tests! {
    fn no_command_opens_the_terminal_of_its_user_to_others(lab) {
        let outgate = lab.tools.programs.join("outgate");
        let tries = "T=$(tty); chmod 666 $T && echo CHANGED; chmod o+r $T && echo CHANGED; chmod 0777 /proc/self/fd/0 && echo CHANGED; chown 12345 $T && echo CHANGED; chgrp 0 $T && echo CHANGED; setfacl -m u:12345:rw $T 2>/dev/null && echo CHANGED; chmod 600 $T && echo KEPT; echo O\"\"VER";
        for identity in Identity::all() {
            let words = ["/usr/bin/python3", "-c", ON_A_TERMINAL, &outgate.to_string_lossy(), "run", "--", "sh", "-c", tries];
            let words: Vec<String> = words.iter().map(|&word| word.to_owned()).collect();
            let outcome = lab.start_bare(identity, &words).finish();
            let modes = outcome.stdout.lines().find_map(|line| line.strip_prefix("modes "));
            let modes: Vec<&str> = modes.unwrap_or_default().split(' ').collect();
            assert_eq!(modes.len(), 4, "{outcome}");
            assert_eq!(modes[1], "0o600", "{identity:?} {outcome}");
            assert_eq!(modes[2], identity.uid().to_string(), "{outcome}");
            assert!(!outcome.stdout.contains("CHANGED") && outcome.stdout.contains("KEPT"), "{identity:?} {outcome}");
        }
    }

    fn no_way_leads_to_the_terminal_of_a_program_outside(lab) {
        let seconds = race_time().as_secs_f64().to_string();
        for identity in Identity::all() {
            let (stranger, name) = victim(lab, identity);
            let attack = python(&["attack", &name, &seconds]);
            let bare = lab.start_bare(identity, &attack).finish();
            let bare = reports(&bare);
            let reached = stranger.finish();
            assert!(reached.stdout.contains("written-by-a-stranger"), "{bare:?} {reached}");
            assert!(bare.get("by-name-talk") == Some(&"opened") && bare.get("swapped") == Some(&"reached"), "{bare:?}");

            let (stranger, name) = victim(lab, identity);
            let attack = python(&["attack", &name, &seconds]);
            let outcome = Sandbox::plain(lab, identity).run(&attack);
            let inside = reports(&outcome);
            let untouched = stranger.finish();
            assert!(untouched.stdout.contains("untouched"), "{identity:?} {outcome} {untouched}");
            assert_eq!(inside.len(), bare.len(), "{identity:?} {outcome}");
            for (way, said) in inside {
                let expected = if OWN.contains(&way) { &["opened"][..] } else { &NOT_YOURS };
                assert!(expected.contains(&said), "{identity:?} {way}: {outcome}");
            }
        }
    }
}
