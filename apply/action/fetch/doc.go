// Package fetch gets files from web servers. What is at an address may change, so every file has a digest that says
// which one is meant.
package fetch
