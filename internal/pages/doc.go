// Package pages holds pages of the documentation to the code: the tables of a page that
// say what a crash leaves, the section that lists the operations of each transition with
// the row that each leads to, and the table of trials with the tests that hold them. Only
// tests import it.
//
// A page is read as it is written. A row is a line of a table whose first column is
// called "row"; its first cell is its key. A listing is what stands in a section from its
// first line in bold to the next heading, and is made from [Run]s.
package pages
