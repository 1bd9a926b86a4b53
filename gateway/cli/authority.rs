//! `outgate ca create` and `outgate ca show`, as far as they need certificates:
//! makes the two files of an authority, or says what is in them.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is the program's voice"
)]

use std::path::Path;
use std::process::ExitCode;

use outgate_gateway::authority::{
    AuthorityFiles, AuthorityRequest, CaError, CertificateAbout, establish,
};
use outgate_gateway::authority::{describe, open};
use outgate_gateway::config::{AuthorityArguments, DescriptionForm};
use outgate_policy::legible;
use serde_json::json;

/// The command line, or a file that it names, is at fault.
const USAGE_ERROR: u8 = 2;
/// An authority that cannot be used.
const UNUSABLE: u8 = 1;

/// Does what the arguments ask for.
pub(crate) fn run(request: &AuthorityArguments) -> ExitCode {
    let done = match request {
        AuthorityArguments::Create(directory, request) => create(directory, request),
        AuthorityArguments::Show(directory, shape) => show(directory, *shape),
    };
    done.unwrap_or_else(|error| {
        eprintln!("outgate: {error}");
        ExitCode::from(USAGE_ERROR)
    })
}

fn create(directory: &Path, request: &AuthorityRequest) -> Result<ExitCode, CaError> {
    let about = establish(directory, request)?;
    let place = AuthorityFiles::of(directory);
    println!("made the authority `{}`", legible(&about.name));
    println!(
        "  certificate  {}  (for everybody)",
        place.certificate.display()
    );
    println!("  key          {}  (for you alone)", place.key.display());
    println!("  vouches for  {}", permitted(&about));
    println!("  until        {}", about.ends.date());
    if request.permitted.is_empty() {
        eprintln!(
            "outgate: warning: whoever gets its key can pass as every host towards all that \
             trust it\n  hint: `--permit DOMAIN` limits it to the hosts that it is for"
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn permitted(about: &CertificateAbout) -> String {
    let permitted = about.scope.permitted();
    if permitted.is_empty() {
        "every name and address".to_owned()
    } else {
        format!("{}, and nothing else", legible(&permitted.join(", ")))
    }
}

fn show(directory: &Path, shape: DescriptionForm) -> Result<ExitCode, CaError> {
    let place = AuthorityFiles::of(directory);
    let about = describe(&place)?;
    let usable = open(&place).map(drop);
    let fault = usable.as_ref().err().map(ToString::to_string);
    let fingerprint: Vec<String> = about
        .fingerprint
        .iter()
        .map(|byte| format!("{byte:02X}"))
        .collect();
    let fingerprint = fingerprint.join(":");
    match shape {
        DescriptionForm::Text => {
            println!("authority    {}", legible(&about.name));
            println!("certificate  {}", place.certificate.display());
            println!("SHA-256      {fingerprint}");
            println!("from         {}", about.begins.date());
            println!("until        {}", about.ends.date());
            println!("vouches for  {}", permitted(&about));
            let state = fault.as_deref().unwrap_or("for you alone, as it should be");
            println!("key          {state}");
        }
        DescriptionForm::Json => println!(
            "{}",
            json!({
                "name": about.name,
                "certificate": place.certificate,
                "key": place.key,
                "sha256": fingerprint,
                "from": about.begins.date().to_string(),
                "until": about.ends.date().to_string(),
                "permitted": about.scope.permitted(),
                "usable": fault.is_none(),
                "fault": fault,
            })
        ),
    }
    Ok(match fault {
        None => ExitCode::SUCCESS,
        Some(_) => ExitCode::from(UNUSABLE),
    })
}
