// Package pricebook converts the API's price books to the form that package tariff
// calculates with. It is pure.
package pricebook
