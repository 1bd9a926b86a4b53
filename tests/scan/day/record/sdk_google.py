import json
import subprocess

import google.auth
import google.auth.transport.requests
from google.oauth2 import service_account

scopes = ["https://www.googleapis.com/auth/cloud-platform"]
own, _ = google.auth.default(scopes=scopes)
session = google.auth.transport.requests.AuthorizedSession(own)
session.get("https://storage.googleapis.com/storage/v1/b?project=my-project")
session.post("https://storage.googleapis.com/upload/storage/v1/b/my-bucket/o?uploadType=media&name=a", data=b"text")
key = subprocess.run(["openssl", "genrsa", "2048"], capture_output=True, check=True).stdout.decode()
about = {"type": "service_account", "private_key": key, "private_key_id": "1", "project_id": "my-project",
         "client_email": "me@my-project.iam.gserviceaccount.com", "token_uri": "https://oauth2.googleapis.com/token"}
service = service_account.Credentials.from_service_account_info(about, scopes=scopes)
session = google.auth.transport.requests.AuthorizedSession(service)
session.get("https://cloudresourcemanager.googleapis.com/v1/projects")
