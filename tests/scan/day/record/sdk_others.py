import os
import sys


def github():
    import github as library

    own = library.Github(auth=library.Auth.Token(os.environ["GITHUB_TOKEN"]), retry=None)
    own.get_user().login
    own.requester.requestJsonAndCheck("POST", "/repos/me/app/issues", input={"title": "t", "body": "b"})


def gitlab():
    import gitlab as library

    own = library.Gitlab("https://gitlab.com", private_token=os.environ["GITLAB_TOKEN"])
    own.http_get("/projects")
    own.http_post("/projects/1/issues", post_data={"title": "t"})


def slack():
    import slack_sdk

    own = slack_sdk.WebClient(os.environ["SLACK_BOT_TOKEN"])
    own.chat_postMessage(channel="C1", text="hello")
    own.conversations_list()


def stripe():
    import stripe as library

    library.ca_bundle_path = os.environ["SSL_CERT_FILE"]
    library.api_key = os.environ["STRIPE_API_KEY"]
    library.Customer.create(email="me@example.com", metadata={"a": "b"})
    library.Customer.list(limit=3)


def sentry():
    import sentry_sdk

    sentry_sdk.init(os.environ["SENTRY_DSN"], traces_sample_rate=1.0)
    try:
        raise ValueError("a fault")
    except ValueError as error:
        sentry_sdk.capture_exception(error)
    sentry_sdk.flush()


def hub():
    import huggingface_hub

    own = huggingface_hub.HfApi()
    own.whoami()
    own.create_repo("me/m", exist_ok=True)
    own.upload_file(path_or_fileobj=b"text", path_in_repo="a.txt", repo_id="me/m")


globals()[sys.argv[1]]()
