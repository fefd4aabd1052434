package appgateway

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"

	"github.com/basalt-gpu/basalt/api"
)

// use is what a pass is for: one to enter is in a link, and is exchanged for one to
// visit.
type use string

const (
	toEnter use = "enter"
	toVisit use = "visit"
)

const (
	enterLife = time.Minute
	visitLife = 12 * time.Hour
	maxPass   = 1024 // bytes of text
)

// pass states that the holder of a session or an API key may access a port of an
// instance, if the Directory still allows it when the pass is used.
type pass struct {
	Holder string // ID of the session or key
	Target Target
	Use    use
	Ends   time.Time
}

// claims are the JWT claims of a pass (RFC 7519).
type claims struct {
	jwt.Claims
	Port uint16 `json:"port"`
}

// errPass is returned for every invalid pass, whatever the reason.
var errPass = errors.New("pass is not valid")

// sign returns the text of a pass.
func (k *Keys) sign(ctx context.Context, p pass) (string, error) {
	key, err := k.load(ctx)
	if err != nil {
		return "", err
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: key}, nil)
	if err != nil {
		return "", fmt.Errorf("sign a pass: %w", err)
	}
	return jwt.Signed(signer).Claims(claims{Port: p.Target.Port, Claims: jwt.Claims{Subject: p.Holder, ID: string(p.Target.Instance),
		Audience: jwt.Audience{string(p.Use)}, Expiry: jwt.NewNumericDate(p.Ends)}}).Serialize()
}

// open returns the pass in the text, if it is valid for the use at the given time,
// and errPass otherwise.
func (k *Keys) open(ctx context.Context, text string, u use, now time.Time) (pass, error) {
	key, err := k.load(ctx)
	if err != nil {
		return pass{}, err
	}
	if len(text) > maxPass {
		return pass{}, errPass
	}
	token, err := jwt.ParseSigned(text, []jose.SignatureAlgorithm{jose.HS256})
	if err != nil {
		return pass{}, errPass
	}
	var c claims
	if err := token.Claims(key, &c); err != nil || c.Expiry == nil {
		return pass{}, errPass
	}
	if err := c.ValidateWithLeeway(jwt.Expected{AnyAudience: jwt.Audience{string(u)}, Time: now}, 0); err != nil {
		return pass{}, errPass
	}
	return pass{Holder: c.Subject, Target: Target{api.InstanceID(c.ID), c.Port}, Use: u, Ends: c.Expiry.Time()}, nil
}
