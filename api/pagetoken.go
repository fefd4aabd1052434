package api

import (
	"encoding/base64"
	"encoding/json"
)

// PageToken makes the place where a page ended the token with which the next one is asked for.
func PageToken(place any) string { return base64.RawURLEncoding.EncodeToString(Encode(place)) }

// FromPageToken reads a PageToken; the zero place is that of an empty one. The error is an *Error
// with CodeInvalid: clients send what they like.
func FromPageToken[T any](token string) (T, error) {
	var place, none T
	if token == "" {
		return none, nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err == nil {
		err = json.Unmarshal(raw, &place)
	}
	if err != nil {
		return none, Errorf(CodeInvalid, "is not a token from a previous page").At("continue")
	}
	return place, nil
}
