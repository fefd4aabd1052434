package auth

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// ChooseLanguage sets the language of mail to the session's user.
func (a *Authenticator) ChooseLanguage(ctx context.Context, in *api.LanguageChoice) (*api.LanguageChoice, error) {
	u, err := a.Me(ctx)
	if err != nil {
		return nil, err
	}
	if err := api.ValidateMailLanguage("language", in.Language); err != nil {
		return nil, err
	}
	if u.Spec.Language == in.Language {
		return in, nil
	}
	u.Spec.Language = in.Language
	return in, a.WriteCredentials(ctx, u, Credentials(u))
}

// speak sets the language of a user who has none to that of the request.
func speak(ctx context.Context, u *api.User) {
	if u.Spec.Language == "" {
		u.Spec.Language = Spoken(ctx)
	}
}
