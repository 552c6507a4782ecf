module program

go 1.26.0
