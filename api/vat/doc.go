// Package vat checks the form and the check digits of VAT numbers, and knows which
// countries there are. It is pure; that a number was issued only its country knows.
package vat
