from tests.compiler.golden import write_all

write_all()
