package passkey

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/go-webauthn/webauthn/protocol"
	"github.com/go-webauthn/webauthn/webauthn"
)

// maxAnswerBytes limits the size of a browser's response: without attestation it has
// less than 4 KiB.
const maxAnswerBytes = 32 << 10

// ErrCounter is returned if an authenticator's signature counter is lower than before:
// the authenticator may have been cloned (section 6.1.1).
var ErrCounter = errors.New("the authenticator's signature counter went back")

// Key is what is stored of a passkey to verify its responses.
type Key struct {
	ID        []byte // the credential ID
	PublicKey []byte // COSE_Key
	Flags     byte   // of the authenticator data, at the last use
	SignCount uint32
}

// Synced reports whether the passkey is backed up elsewhere.
func (k Key) Synced() bool { return protocol.AuthenticatorFlags(k.Flags).HasBackupState() }

// Owner is a user with passkeys.
type Owner struct {
	ID   string // used as the user handle
	Name string
	Keys []Key
}

// WebAuthnID implements webauthn.User.
func (o Owner) WebAuthnID() []byte { return []byte(o.ID) }

// WebAuthnName implements webauthn.User.
func (o Owner) WebAuthnName() string { return o.Name }

// WebAuthnDisplayName implements webauthn.User.
func (o Owner) WebAuthnDisplayName() string { return o.Name }

// WebAuthnCredentials implements webauthn.User.
func (o Owner) WebAuthnCredentials() []webauthn.Credential {
	var out []webauthn.Credential
	for _, k := range o.Keys {
		out = append(out, webauthn.Credential{ID: k.ID, PublicKey: k.PublicKey, Flags: webauthn.NewCredentialFlags(protocol.AuthenticatorFlags(k.Flags)),
			Authenticator: webauthn.Authenticator{SignCount: k.SignCount}})
	}
	return out
}

// Challenge is the argument of the browser's call, and the session that is needed to
// verify the response.
type Challenge struct {
	Options map[string]any
	Session json.RawMessage
}

// party returns the site with its requirements for authenticators: discoverable
// credentials and user verification.
func (s Site) party(product string) (*webauthn.WebAuthn, error) {
	resident := true
	return webauthn.New(&webauthn.Config{RPID: s.Name, RPDisplayName: product, RPOrigins: []string{s.Origin}, AttestationPreference: protocol.PreferNoAttestation,
		AuthenticatorSelection: protocol.AuthenticatorSelection{RequireResidentKey: &resident, ResidentKey: protocol.ResidentKeyRequirementRequired,
			UserVerification: protocol.VerificationRequired}})
}

func challenge(options any, session *webauthn.SessionData) (c Challenge, err error) {
	text, err := json.Marshal(options)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(text, &c.Options); err != nil {
		return c, fmt.Errorf("read back the options of a challenge: %w", err)
	}
	c.Session, err = json.Marshal(session)
	return c, err
}

// BeginRegistration returns a challenge for a new passkey of a user, on an
// authenticator that has none of the user's yet.
func (s Site) BeginRegistration(product string, o Owner) (Challenge, error) {
	party, err := s.party(product)
	if err != nil {
		return Challenge{}, err
	}
	known := webauthn.Credentials(o.WebAuthnCredentials()).CredentialDescriptors()
	options, session, err := party.BeginRegistration(o, webauthn.WithExclusions(known))
	if err != nil {
		return Challenge{}, err
	}
	return challenge(options.Response, session)
}

// FinishRegistration returns the key of the passkey that an authenticator has created.
func (s Site) FinishRegistration(o Owner, session json.RawMessage, answer map[string]any) (Key, error) {
	party, begun, text, err := s.finish(session, answer)
	if err != nil {
		return Key{}, err
	}
	parsed, err := protocol.ParseCredentialCreationResponseBytes(text)
	if err != nil {
		return Key{}, detailed(err)
	}
	made, err := party.CreateCredential(o, begun, parsed)
	if err != nil {
		return Key{}, detailed(err)
	}
	return keyOf(made), nil
}

// BeginLogin returns a challenge for any passkey of the site.
func (s Site) BeginLogin() (Challenge, error) {
	party, err := s.party(s.Name)
	if err != nil {
		return Challenge{}, err
	}
	options, session, err := party.BeginDiscoverableLogin(webauthn.WithUserVerification(protocol.VerificationRequired))
	if err != nil {
		return Challenge{}, err
	}
	return challenge(options.Response, session)
}

// Assertion is a parsed response that is not verified yet.
type Assertion struct {
	User   string // the user that it claims to be
	parsed *protocol.ParsedCredentialAssertionData
}

// ParseAssertion parses a response.
func ParseAssertion(answer map[string]any) (Assertion, error) {
	text, err := answerText(answer)
	if err != nil {
		return Assertion{}, err
	}
	parsed, err := protocol.ParseCredentialRequestResponseBytes(text)
	if err != nil {
		return Assertion{}, detailed(err)
	}
	return Assertion{User: string(parsed.Response.UserHandle), parsed: parsed}, nil
}

// FinishLogin returns the used key as it is to be stored, or an error if the response
// is not a valid one to this challenge by one of the user's keys.
func (s Site) FinishLogin(o Owner, session json.RawMessage, a Assertion) (Key, error) {
	party, begun, err := s.begun(session)
	if err != nil {
		return Key{}, err
	}
	who := func(_, handle []byte) (webauthn.User, error) {
		if !bytes.Equal(handle, o.WebAuthnID()) {
			return nil, errors.New("the passkey is another user's")
		}
		return o, nil
	}
	_, used, err := party.ValidatePasskeyLogin(who, begun, a.parsed)
	if err != nil {
		return Key{}, detailed(err)
	}
	if used.Authenticator.CloneWarning {
		return Key{}, ErrCounter
	}
	return keyOf(used), nil
}

func keyOf(c *webauthn.Credential) Key {
	return Key{ID: c.ID, PublicKey: c.PublicKey, Flags: byte(c.Flags.ProtocolValue()), SignCount: c.Authenticator.SignCount}
}

func (s Site) finish(session json.RawMessage, answer map[string]any) (*webauthn.WebAuthn, webauthn.SessionData, []byte, error) {
	party, begun, err := s.begun(session)
	if err != nil {
		return nil, begun, nil, err
	}
	text, err := answerText(answer)
	return party, begun, text, err
}

// begun parses the session of a challenge, which must be of this site.
func (s Site) begun(session json.RawMessage) (*webauthn.WebAuthn, webauthn.SessionData, error) {
	var begun webauthn.SessionData
	if err := json.Unmarshal(session, &begun); err != nil {
		return nil, begun, fmt.Errorf("decode the challenge: %w", err)
	}
	if begun.RelyingPartyID != s.Name {
		return nil, begun, fmt.Errorf("the challenge is of %q, want %q", begun.RelyingPartyID, s.Name)
	}
	party, err := s.party(s.Name)
	return party, begun, err
}

func answerText(answer map[string]any) ([]byte, error) {
	text, err := json.Marshal(answer)
	if err == nil && len(text) > maxAnswerBytes {
		err = fmt.Errorf("the answer has %d bytes, more than %d", len(text), maxAnswerBytes)
	}
	return text, err
}

// detailed adds the library's developer information, for the log.
func detailed(err error) error {
	var e *protocol.Error
	if errors.As(err, &e) && e.DevInfo != "" {
		return fmt.Errorf("%w: %s", err, e.DevInfo)
	}
	return err
}
