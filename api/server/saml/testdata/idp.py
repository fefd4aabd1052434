# An identity provider of Debian's pysaml2, whose signatures xmlsec1 makes.
# Usage: idp.py FOLDER metadata; idp.py FOLDER answers < the request's SAMLRequest, which
# prints three responses: with a signed assertion, a signed response, and both.
# FOLDER has the provider's key.pem and cert.pem, and the service's metadata sp.xml.
import base64, os, sys
from saml2 import BINDING_HTTP_POST, BINDING_HTTP_REDIRECT
from saml2.config import IdPConfig
from saml2.metadata import entity_descriptor
from saml2.saml import NAMEID_FORMAT_PERSISTENT, NAME_FORMAT_UNSPECIFIED, NameID
from saml2.server import Server
from saml2.xmldsig import DIGEST_SHA256, SIG_RSA_SHA256

folder, what = sys.argv[1:]
base = "https://idp.example/"
settings = {
    "entityid": base + "entity",
    "xmlsec_binary": "/usr/bin/xmlsec1",
    "key_file": os.path.join(folder, "key.pem"),
    "cert_file": os.path.join(folder, "cert.pem"),
    "service": {"idp": {
        "endpoints": {"single_sign_on_service": [(base + "sso", BINDING_HTTP_REDIRECT)]},
        "name_id_format": [NAMEID_FORMAT_PERSISTENT],
        "policy": {"default": {"name_form": NAME_FORMAT_UNSPECIFIED, "lifetime": {"minutes": 5}, "attribute_restrictions": None}},
    }},
}
if what == "metadata":
    print(entity_descriptor(IdPConfig().load(settings)))
    sys.exit()
settings["metadata"] = {"local": [os.path.join(folder, "sp.xml")]}
idp = Server(config=IdPConfig().load(settings))
request = idp.parse_authn_request(sys.stdin.read(), BINDING_HTTP_REDIRECT)
args = idp.response_args(request.message)
args.pop("name_id_policy", None)
for signed in "assertion", "response", "both":
    answer = idp.create_authn_response(
        {"email": "ann@example.com", "name": "Ann", "groups": ["staff", "gpu"]},
        name_id=NameID(format=NAMEID_FORMAT_PERSISTENT, text="u-1"), userid="u-1",
        authn={"class_ref": "urn:oasis:names:tc:SAML:2.0:ac:classes:Password", "authn_auth": base},
        sign_assertion=signed != "response", sign_response=signed != "assertion", sign_alg=SIG_RSA_SHA256, digest_alg=DIGEST_SHA256, **args)
    print(base64.b64encode(str(answer).encode()).decode())
