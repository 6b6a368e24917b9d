// Package chartfile reads files of seats, as they come out of spreadsheets and drawing
// programs, into what the API takes.
//
// A file is CSV, a line a seat; or JSON, a chart as the API takes it or a whole event
// with its chart. Which it is, its first character tells: JSON begins with a brace. What
// is wrong with a file is told with line numbers, and all of it, so that nobody has to
// mend and try again line by line. The rules of a chart are those of package seats.
//
// Where no seat has a place in the drawing, the seats are laid out on a grid.
package chartfile
